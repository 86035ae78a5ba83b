"""The private socket by which a command reaches the process that keeps a project running."""

from engine.control.client import Client, connect
from engine.control.private_socket import socket_path
from engine.control.request import Request
from engine.control.server import ControlServer

__all__ = ["Client", "ControlServer", "Request", "connect", "socket_path"]
