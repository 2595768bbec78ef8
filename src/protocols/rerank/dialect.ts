// Differences between backends that use this protocol. A dialect is plain data, so a provider can
// be defined without code. Default for every field: the behavior of Cohere.

export interface RerankDialect {
  /**
   * Whether the backend accepts `return_documents`. Default: true. The client receives the
   * documents in both cases, because its own request contains them.
   */
  returnsDocuments?: boolean;
  /** Whether documents can be text only. Default: objects are sent unchanged. */
  textOnly?: boolean;
  /**
   * Top-level fields that the backend rejects with an error. The gateway drops them and warns the
   * client.
   */
  dropFields?: readonly string[];
}
