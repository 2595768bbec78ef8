// The protocol's name and the fields that it knows.
export const ID = "moderations";

const COMMON_FIELDS: readonly string[] = ["model", "input", "stream", "user"];

export const knowsField = (field: string): boolean => COMMON_FIELDS.includes(field);
