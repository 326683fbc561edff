"""HTTP/1.1 over a socket: connections, requests as they arrive, answers as they leave."""
