// The package's own tests, as its author runs them.
await import("../../examples/packages/middleware-words-guard/test/words-guard.test.ts");
