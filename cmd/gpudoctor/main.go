// Command gpudoctor examines how the GPUs of a machine talk to each other.
package main

func main() {}
