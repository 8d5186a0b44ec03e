from support.network_fixtures import frames_of, one_thread, real_frames, screens_of

__all__ = ["frames_of", "one_thread", "real_frames", "screens_of"]
