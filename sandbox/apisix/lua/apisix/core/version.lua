return { VERSION = "3.18.0-stand-in" }
