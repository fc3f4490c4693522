"""The jobs that a study is trained in, and who runs them: this process, others, or machines."""
