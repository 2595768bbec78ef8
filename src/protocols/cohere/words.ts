// The name of this format, and the fields that it knows.
export const ID = "cohere-embed";

const KNOWN: ReadonlySet<string> = new Set([
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
export const knows = (field: string): boolean => KNOWN.has(field);
