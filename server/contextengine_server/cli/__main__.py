"""`python -m contextengine_server.cli`: the command line where its script is not on the path."""

from contextengine_server.cli import main

main()
