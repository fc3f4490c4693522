"""Workers that run the groups of a study: processes on GPUs of this machine, tasks on Ray."""
