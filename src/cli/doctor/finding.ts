// What `tollgate doctor` has to say of one thing that it looked at.

export interface DoctorFinding {
  /** Stable, for programs: "disk/fsync". */
  readonly id: string;
  readonly level: "fine" | "note" | "warning" | "error";
  /** What was found, in a sentence. */
  readonly found: string;
  /** What to do. Warnings and errors always say it. */
  readonly todo?: string;
}

export const fine = (id: string, found: string): DoctorFinding => ({ id, level: "fine", found });
export const note = (id: string, found: string, todo?: string): DoctorFinding => ({
  id,
  level: "note",
  found,
  ...(todo !== undefined && { todo }),
});
export const warning = (id: string, found: string, todo: string): DoctorFinding => ({
  id,
  level: "warning",
  found,
  todo,
});
export const error = (id: string, found: string, todo: string): DoctorFinding => ({
  id,
  level: "error",
  found,
  todo,
});
