// Decides which tools a client may see and call: the patterns of its key and accounts, and those of
// the set that it uses.
import { matchesGlob } from "tollgate/plugin";

/** A name that no tool has. Only a pattern for all tools of a server matches it. */
const NO_TOOL = "\0";

export class ToolAccess {
  /** Lists of patterns. A tool must match a pattern of each list. */
  readonly #lists: readonly (readonly string[])[];

  constructor(...lists: readonly (readonly string[] | undefined)[]) {
    this.#lists = lists.filter((list) => list !== undefined);
  }

  /** Whether the client may call a tool. */
  permits(server: string, tool: string): boolean {
    return this.#matches(`${server}/${tool}`);
  }

  /**
   * Whether the client may use the whole server. This is required for prompts and resources, because
   * they can refer to any tool.
   */
  covers(server: string): boolean {
    return this.#matches(`${server}/${NO_TOOL}`);
  }

  /** Whether the client may be permitted to call a tool of the server. */
  mayReach(server: string): boolean {
    const start = `${server}/`;
    return this.#lists.every((patterns) =>
      patterns.some((pattern) => {
        const star = pattern.indexOf("*");
        const head = star < 0 ? pattern : pattern.slice(0, star);
        return head.startsWith(start) || (star >= 0 && start.startsWith(head));
      }),
    );
  }

  #matches(name: string): boolean {
    return this.#lists.every((patterns) => patterns.some((one) => matchesGlob(one, name)));
  }
}
