/** A lane of a client's WebSocket. Its requests run one after the other. */
export interface SocketLane {
  /** The WebSocket. */
  readonly connection: { readonly isClosed: boolean };
  readonly name: string | undefined;
}
