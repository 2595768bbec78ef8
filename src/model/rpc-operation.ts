// The remote procedure call that a request makes, for the traces and metrics of observers. Requests of
// most protocols make none.
import type { Opt } from "./values.ts";

/**
 * A remote procedure call, such as a call of a tool over MCP. A client must not be able to create an
 * unlimited number of values, so `method` and `target` are names that the plugin knows.
 */
export interface RpcOperation {
  /** Protocol, such as "mcp". */
  readonly system: string;
  /** Method, such as "tools/call". `_OTHER` for a method that the plugin does not know. */
  readonly method: string;
  /** Version of the protocol. Undefined if it is not known. */
  readonly version?: Opt<string>;
  /** Name of the object that is used, such as a tool. Undefined if there is none. */
  readonly target?: Opt<string>;
  /**
   * Error of the call: its code, such as "-32602", or a word, such as "tool_error". `_OTHER` for a
   * code that the plugin does not know. Undefined if the call succeeded.
   */
  readonly errorType?: Opt<string>;
}
