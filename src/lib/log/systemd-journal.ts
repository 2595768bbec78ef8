// systemd's journal, where standard output leads there.
import { fstatSync } from "node:fs";

/**
 * Whether a file that is open, standard output unless told, leads to systemd's journal, which takes a line's level from its beginning
 * ("<4>"). `said`: JOURNAL_STREAM, the device and the inode of what leads there; undefined: nothing does. A plugin that writes lines asks
 * once, in its setup, with what `ctx.env` says. It never throws: what cannot be looked at leads nowhere.
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
