// The package's own tests, as its author runs them.
await import("../../examples/packages/middleware-exact-cache/test/exact-cache.test.ts");
