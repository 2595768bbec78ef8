// Formats bytes and durations for people.
const UNITS = ["B", "KB", "MB", "GB", "TB"] as const;

/** Formats a number of bytes: "12.3 MB". */
export function formatBytes(bytes: number): string {
  let unit = 0;
  let size = bytes;
  while (size >= 1_000 && unit < UNITS.length - 1) {
    size /= 1_000;
    unit++;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${UNITS[unit]}`;
}

/** "0.4 s" */
export const formatSeconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
