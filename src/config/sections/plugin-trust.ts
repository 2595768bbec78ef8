// Trust settings for packages that are not part of Tollgate.

/** The `plugins` section, and the path of its file. */
export interface PluginTrust {
  readonly configFile: string;
  /** If unset, `required` if a lock file exists, else a note. */
  readonly lock?: "required" | "warn" | "off" | undefined;
  /** Packages that may be mounted. If unset, all. */
  readonly allowedPackages?: readonly string[] | undefined;
}
