// The paths at which clients use servers: one server, a set of tools, or everything.
import type { Identity, JsonObject } from "tollgate/plugin";
import type { MountedServer } from "./mounted-server.ts";
import { ToolAccess } from "./tool-access.ts";

/** Servers and permissions of a path, for one client. */
export interface Scope {
  /** Name of the server or set. Empty for everything. */
  readonly name: string;
  /** Servers of which the client may be permitted to call tools, in the order of the options. */
  readonly servers: readonly MountedServer[];
  /** The only server, whose names are used unchanged. */
  readonly only: MountedServer | undefined;
  readonly access: ToolAccess;
  /** Capabilities of the client. A server can offer tools only to clients with a capability. */
  readonly capabilities: JsonObject;
}

const NO_CAPABILITIES: JsonObject = {};

export class Scopes {
  readonly #servers: ReadonlyMap<string, MountedServer>;
  readonly #sets: ReadonlyMap<string, readonly string[]>;
  readonly #tokenTools: (identity: Identity) => readonly string[] | undefined;

  /** @param tokenTools Returns the patterns of tools that the scopes of a token permit. */
  constructor(
    servers: ReadonlyMap<string, MountedServer>,
    sets: ReadonlyMap<string, readonly string[]>,
    tokenTools: (identity: Identity) => readonly string[] | undefined,
  ) {
    this.#servers = servers;
    this.#sets = sets;
    this.#tokenTools = tokenTools;
  }

  /**
   * Returns the scope of a path. Undefined if it does not exist or the client may use nothing of it,
   * so that both are the same for the client.
   */
  find(name: string | undefined, identity: Identity): Scope | undefined {
    const only = name === undefined ? undefined : this.#servers.get(name);
    const set = name === undefined || only ? undefined : this.#sets.get(name);
    if (name !== undefined && !only && !set) return undefined;
    const access = new ToolAccess(identity.tools ?? undefined, set, this.#tokenTools(identity));
    const servers = (only ? [only] : [...this.#servers.values()]).filter((one) =>
      access.mayReach(one.name),
    );
    if (name !== undefined && servers.length === 0) return undefined;
    return { name: name ?? "", servers, only, access, capabilities: NO_CAPABILITIES };
  }
}
