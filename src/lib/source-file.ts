// The program runs from its TypeScript sources, or from JavaScript that the build wrote into dist.

/** Whether this process runs from source. */
export const IS_SOURCE = import.meta.filename.endsWith(".ts");

/**
 * Returns the path of a source file as it is called here: `thread.ts` from source, and `thread.js`
 * in dist.
 */
export const sourceFile = (path: `${string}.ts`): string =>
  IS_SOURCE ? path : path.replace(/\.ts$/, ".js");
