"""The web application: pages on which people judge documents and answers."""
