from support.network_fixtures import frames_of, one_thread, real_frames

__all__ = ["frames_of", "one_thread", "real_frames"]
