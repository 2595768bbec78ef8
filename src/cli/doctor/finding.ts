// One finding of `tollgate doctor`.

export interface DoctorFinding {
  /** Stable identifier for programs: "disk/fsync". */
  readonly id: string;
  readonly level: "ok" | "note" | "warning" | "error";
  /** The finding in one sentence. */
  readonly message: string;
  /** How to fix it. Always set for warnings and errors. */
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
