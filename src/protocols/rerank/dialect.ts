// What differs between hosts that speak this wire. Data, so that a provider can be a row. Everything absent is what Cohere has.

export interface RerankDialect {
  /** It reads `return_documents`. Absent: it does. Documents go back to the client all the same: it sent them. */
  returnsDocuments?: boolean;
  /** Documents are texts alone. Absent: objects travel as they are. */
  textOnly?: boolean;
  /** Top-level fields that are answered with an error; dropped, and the client is told. */
  dropFields?: readonly string[];
}
