// Detects whether output goes to systemd's journal.
import { fstatSync } from "node:fs";

/**
 * Whether an open file descriptor is connected to systemd's journal, which reads a line's level
 * from its prefix ("<4>"). `journalStream` is the value of JOURNAL_STREAM: device and inode of the
 * journal's stream. Undefined if systemd did not start the process. Plugins that write lines call
 * this once in their setup with the value from `ctx.env`. Never throws: returns false if the
 * descriptor cannot be inspected.
 */
export function isSystemdJournal(journalStream: string | undefined, fd = 1): boolean {
  if (journalStream === undefined) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return journalStream === `${dev}:${ino}`;
  } catch {
    return false;
  }
}
