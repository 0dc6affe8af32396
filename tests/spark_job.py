"""A job in a separate process: ``python spark_job.py MASTER FOLDER QUERIES``.

It writes a run and judgments with this many queries, evaluates them in 16 tasks, and writes values
and means. While the last stage runs, it prints how many of its tasks have ended. The master
``connect`` means Spark Connect.
"""

import json
import sys
import threading
import time

import click

from rankgauge.distributed import spark

MEASURES = ("nDCG@10", "RR", "AP", "GMAP", "R@20")


def main(master, folder, queries):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "16")
    builder = builder.config("spark.sql.adaptive.enabled", "false")
    connect = master == "connect"
    session = (builder.remote("local[2]") if connect else builder.master(master)).getOrCreate()
    # Rounded scores, so that there are ties; the run lacks every tenth query.
    rows = session.range(queries * 20).selectExpr(
        f"concat('q', id % {queries}) AS query_id",
        f"concat('d', floor(id / {queries}) * 7 % 23) AS doc_id",
        "pmod(xxhash64(id), 10) / 8D AS score",
        "if(pmod(hash(id), 2) = 0, 'a', 'b') AS run",
    )
    judgments = session.range(queries * 4).selectExpr(
        f"concat('q', id % {queries}) AS query_id",
        f"concat('d', floor(id / {queries}) * 5 % 23) AS doc_id",
        "pmod(xxhash64(id), 4) AS grade",
    )
    rows.where("query_id NOT LIKE '%9'").write.parquet(f"{folder}/run")
    judgments.write.parquet(f"{folder}/qrels")
    if not connect:
        threading.Thread(target=report, args=[session.sparkContext], daemon=True).start()
    run, qrels = (session.read.parquet(f"{folder}/{name}") for name in ("run", "qrels"))
    click.echo("evaluating")
    values = spark.evaluate(run, qrels, MEASURES, runs=("a", "b"), partitions=16)
    values.write.parquet(f"{folder}/values")
    means = spark.summarize(session.read.parquet(f"{folder}/values"))
    click.echo(json.dumps(means))
    session.stop()


def report(context):
    tracker, last = context.statusTracker(), -1
    while True:
        for stage in tracker.getActiveStageIds():
            found = tracker.getStageInfo(stage)
            if found and found.numTasks == 16 and found.numCompletedTasks != last:
                last = found.numCompletedTasks
                click.echo(f"ended {last}")
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
