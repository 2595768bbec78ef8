// Registry of outages. A plugin that runs in another process registers a function that returns its
// current outage. The key is the object that the plugin's setup returned.
/** A period in which a plugin in another process cannot be reached. Times are Unix milliseconds. */
export interface PluginOutage {
  /** Time when the plugin's connection was lost. */
  readonly since: number;
  /** Reason why the last connection ended or the last attempt to connect failed. */
  readonly reason: string;
  /** Time when the next attempt to connect begins. */
  readonly retryAt: number;
}

const reports = new WeakMap<object, () => PluginOutage | undefined>();

/** Registers how to read the outage of the plugin whose setup returned `made`. */
export function registerOutage<T extends object>(made: T, read: () => PluginOutage | undefined): T {
  reports.set(made, read);
  return made;
}

/** Returns the outage of a plugin in another process; undefined if it is connected or runs in this process. */
export const getOutage = (made: object): PluginOutage | undefined => reports.get(made)?.();
