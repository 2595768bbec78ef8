// Paths of routes with parameters, for code that does not load h3.

/** Decodes path parameters once. Returns undefined if a parameter is malformed. */
export function decodeParams(
  params: Record<string, string> | undefined,
): Record<string, string> | undefined {
  const clear: Record<string, string> = {};
  try {
    for (const name in params) clear[name] = decodeURIComponent(params[name]!);
  } catch {
    return undefined;
  }
  return clear;
}

/**
 * Returns a function that matches a path with the path of a route, and returns the decoded
 * parameters. A parameter matches one segment. Wildcards are not supported.
 */
export function createPathMatcher(
  routePath: string,
): (path: string) => Record<string, string> | undefined {
  const names: string[] = [];
  const source = routePath
    .split(/:([A-Za-z]\w*)/)
    .map((part, at) => {
      if (at % 2 === 0) return part.replaceAll(/\W/g, "\\$&");
      names.push(part);
      return "([^/?]+)";
    })
    .join("");
  const pattern = new RegExp(`^${source}$`);
  return (path) => {
    const found = pattern.exec(path);
    return found
      ? decodeParams(Object.fromEntries(names.map((name, at) => [name, found[at + 1]!])))
      : undefined;
  };
}
