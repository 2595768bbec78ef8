// Cursors of lists of jobs. All stores use the same ones.
import type { JobRecord } from "./job.ts";

/** Cursor of a job. The newest job has the highest cursor. */
export const jobCursor = ({ createdAt, id }: Pick<JobRecord, "createdAt" | "id">): string =>
  `${String(Math.floor(createdAt)).padStart(16, "0")}:${id}`;

/** Returns the creation time in a cursor. */
export const createdAtOfCursor = (cursor: string): number => Number(cursor.split(":", 1)[0]);
