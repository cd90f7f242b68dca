"""The rival of the pipeline: an empty agent of stock Faust with stock settings.

    python -m rankstream.lab.benchmarks.pipeline.stock_agent BOOTSTRAP TOPIC N_RECORDS

Prints when it took its first record and its last, seconds since 1970, and goes on
until it is killed: whoever measures looks at it once more.
"""

import os
import sys
import time

import faust


def main() -> None:
    """Take records, and say when so many were taken."""
    bootstrap, topic, n_records = sys.argv[1], sys.argv[2], int(sys.argv[3])
    app = faust.App(
        f"stock-{os.getpid()}", broker=f"kafka://{bootstrap}", web_enabled=False
    )

    async def take(stream: faust.StreamT[bytes]) -> None:
        n_taken, started = 0, 0.0
        async for _ in stream:
            if not n_taken:
                started = time.time()
            n_taken += 1
            if n_taken == n_records:
                # A line of its own: Faust draws a spinner.
                sys.stdout.write(f"\ntook={started} {time.time()}\n")
                sys.stdout.flush()

    app.agent(app.topic(topic, value_type=bytes, value_serializer="raw"))(take)
    faust.Worker(
        app, loglevel="ERROR", quiet=True, redirect_stdouts=False
    ).execute_from_commandline()


if __name__ == "__main__":
    main()
