"""Workers that run the jobs of a study: processes on GPUs of this machine, tasks on Ray."""
