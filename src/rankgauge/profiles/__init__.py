"""How other tools come to their numbers, each as steps away from ours."""
