// What `tollgate doctor` has to say of one thing that it looked at.

export interface DoctorFinding {
  /** Stable, for programs: "disk/fsync". */
  readonly id: string;
  readonly level: "ok" | "note" | "warning" | "error";
  /** What was found, in a sentence. */
  readonly message: string;
  /** What to do. Warnings and errors always say it. */
  readonly action?: string;
}

export const okFinding = (id: string, found: string): DoctorFinding => ({
  id,
  level: "ok",
  message: found,
});
export const noteFinding = (id: string, found: string, todo?: string): DoctorFinding => ({
  id,
  level: "note",
  message: found,
  ...(todo !== undefined && { action: todo }),
});
export const warningFinding = (id: string, found: string, todo: string): DoctorFinding => ({
  id,
  level: "warning",
  message: found,
  action: todo,
});
export const errorFinding = (id: string, found: string, todo: string): DoctorFinding => ({
  id,
  level: "error",
  message: found,
  action: todo,
});
