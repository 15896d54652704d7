"""What every call goes through, whatever it asks: admission, authentication, errors, serving."""
