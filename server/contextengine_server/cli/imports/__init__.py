"""`contextengine import`: sessions of other programs and exports of ours, into a server."""
