// Detects whether output goes to systemd's journal.
import { fstatSync } from "node:fs";

/**
 * Whether an open file descriptor is connected to systemd's journal, which takes a line's level
 * from its prefix ("<4>"). `journalStream` is the value of JOURNAL_STREAM: device and inode of the
 * journal's stream. Undefined: not run by systemd. Plugins that write lines call this once in their
 * setup with the value from `ctx.env`. Never throws: returns false for a descriptor that cannot be
 * inspected.
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
