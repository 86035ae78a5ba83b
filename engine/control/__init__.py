"""The private socket by which a command reaches the process that keeps a project running."""

from engine.control.client import ask
from engine.control.private_socket import socket_path
from engine.control.server import ControlServer

__all__ = ["ControlServer", "ask", "socket_path"]
