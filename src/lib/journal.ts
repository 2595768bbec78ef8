// systemd's journal, where standard output leads there.
import { fstatSync } from "node:fs";

/** `said`: JOURNAL_STREAM, which names the device and the inode of what leads to the journal. */
export function isJournal(said: string | undefined, fd = 1): boolean {
  if (said === undefined) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return said === `${dev}:${ino}`;
  } catch {
    return false;
  }
}
