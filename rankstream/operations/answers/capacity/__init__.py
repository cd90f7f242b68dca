"""What a load needs: processes, cores, memory, bytes, disk, and what binds first.

`load.py` says what comes, `drivers.py` what follows from that, `constants.py` what each
of it costs, as measured, and `plan.py` multiplies both.
"""
