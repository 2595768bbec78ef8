// The words of this wire: its name, and the fields that it knows.
export const ID = "moderations";

const COMMON: readonly string[] = ["model", "input", "stream", "user"];

export const knows = (field: string): boolean => COMMON.includes(field);
