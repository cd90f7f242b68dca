"""The rival of the pipeline: an empty agent of stock Faust with stock settings.

    python -m rankstream.benchmarks.stock_agent BOOTSTRAP TOPIC N_RECORDS

Prints how many records a second it took, from its first to its last.
"""

import os
import sys
import time

import faust


def main() -> None:
    """Take records until there are no more, print the rate, and end."""
    bootstrap, topic, n_records = sys.argv[1], sys.argv[2], int(sys.argv[3])
    app = faust.App(
        f"stock-{os.getpid()}", broker=f"kafka://{bootstrap}", web_enabled=False
    )

    async def take(stream: faust.StreamT[bytes]) -> None:
        n_taken, started = 0, 0.0
        async for _ in stream:
            if not n_taken:
                started = time.perf_counter()
            n_taken += 1
            if n_taken == n_records:
                rate = (n_taken - 1) / (time.perf_counter() - started)
                # A line of its own: Faust draws a spinner.
                sys.stdout.write(f"\nrate={rate}\n")
                sys.stdout.flush()
                # A graceful stop takes seconds that nobody measures.
                os._exit(0)

    app.agent(app.topic(topic, value_type=bytes, value_serializer="raw"))(take)
    faust.Worker(
        app, loglevel="ERROR", quiet=True, redirect_stdouts=False
    ).execute_from_commandline()


if __name__ == "__main__":
    main()
