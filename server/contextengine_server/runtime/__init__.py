"""What runs beside sessions: the broker of model leases, and the guards of summarizers."""
