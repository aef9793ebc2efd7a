"""Settings of the broker: groups of fields, and the flags, environment and file they come from."""

from ibrik_broker.settings.groups import AdminSettings as AdminSettings
from ibrik_broker.settings.groups import AuthSettings as AuthSettings
from ibrik_broker.settings.groups import CacheSettings as CacheSettings
from ibrik_broker.settings.groups import HttpSettings as HttpSettings
from ibrik_broker.settings.groups import LimitSettings as LimitSettings
from ibrik_broker.settings.groups import Listener as Listener
from ibrik_broker.settings.groups import LoggingSettings as LoggingSettings
from ibrik_broker.settings.groups import LogSettings as LogSettings
from ibrik_broker.settings.groups import MetadataSettings as MetadataSettings
from ibrik_broker.settings.groups import PoolSettings as PoolSettings
from ibrik_broker.settings.groups import ShutdownSettings as ShutdownSettings
from ibrik_broker.settings.groups import TcpSettings as TcpSettings
from ibrik_broker.settings.source import Settings as Settings
from ibrik_broker.settings.source import SettingsError as SettingsError
from ibrik_broker.settings.source import load_settings as load_settings
