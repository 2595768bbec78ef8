// Revisions of MCP, and the names of its metadata.

/** Revisions of MCP that the gateway speaks, the newest first. */
export const REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"] as const;
export type Revision = (typeof REVISIONS)[number];

/** Revisions in which a client opens a session, the newest first. */
export const SESSION_REVISIONS = REVISIONS.slice(1);

/** Whether each request of a revision carries its own metadata, without a session. */
export const isModern = (revision: string): boolean => revision === REVISIONS[0];

export const isRevision = (revision: unknown): revision is Revision =>
  (REVISIONS as readonly unknown[]).includes(revision);

const PREFIX = "io.modelcontextprotocol/";

/** Names of metadata that belong to one connection. */
export const META = {
  protocolVersion: `${PREFIX}protocolVersion`,
  clientInfo: `${PREFIX}clientInfo`,
  clientCapabilities: `${PREFIX}clientCapabilities`,
  logLevel: `${PREFIX}logLevel`,
  serverInfo: `${PREFIX}serverInfo`,
  subscriptionId: `${PREFIX}subscriptionId`,
} as const;

const CONNECTION_META: ReadonlySet<string> = new Set(Object.values(META));

/**
 * Returns metadata without the names that belong to one connection. Undefined if nothing else is in
 * it.
 */
export function withoutConnectionMeta(
  meta: Readonly<Record<string, unknown>>,
): Record<string, never> | undefined {
  for (const name in meta)
    if (!CONNECTION_META.has(name))
      return Object.fromEntries(
        Object.entries(meta).filter(([one]) => !CONNECTION_META.has(one)),
      ) as Record<string, never>;
  return undefined;
}
