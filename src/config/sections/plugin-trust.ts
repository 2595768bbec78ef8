// How far packages that are not Tollgate's own are trusted, as an operator says it.

/** What gateway.yaml says under `plugins:`, and which file it is. */
export interface PluginTrust {
  readonly configFile: string;
  /** Absent: required where there is a lock, a note where there is none. */
  readonly lock?: "required" | "warn" | "off" | undefined;
  /** Packages that may be mounted at all; absent: any. */
  readonly allowedPackages?: readonly string[] | undefined;
}
