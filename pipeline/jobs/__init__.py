"""The jobs: archive, compact, audit, report, replay. Each is a module; `pipeline.cli` runs them."""
