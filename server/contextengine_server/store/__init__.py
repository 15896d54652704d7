"""Where rows are kept: the contract of stores (`protocols`, `rows`, `errors`, `search`), what they
share, and a folder for each."""
