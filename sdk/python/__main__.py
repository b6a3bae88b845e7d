"""The program of an app: python /app runs it. It ends when the runner needs it no more."""

from runner._serve import main

main()
