"""Where rows are kept: the interface, the tables, the migrations, and a package for each
database."""
