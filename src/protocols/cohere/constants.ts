// ID of this protocol and its known fields.
export const ID = "cohere-embed";

const KNOWN_TOP_LEVEL_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "texts",
  "images",
  "inputs",
  "input_type",
  "embedding_types",
  "output_dimension",
  "truncate",
  "max_tokens",
]);
export const knowsField = (field: string): boolean => KNOWN_TOP_LEVEL_FIELDS.has(field);
