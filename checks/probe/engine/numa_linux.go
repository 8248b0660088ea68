package engine

import (
	"fmt"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxNodes is how many NUMA nodes are distinguished: the largest machines that hold GPUs have 36 (GB200).
const maxNodes = 64

// memoryNodes are the NUMA nodes from which this process may take memory, or only -1 if the kernel does not say
// (MPOL_F_MEMS_ALLOWED is 4, include/uapi/linux/mempolicy.h).
func memoryNodes() []int {
	var mask [16]uint64 // get_mempolicy requires room for the kernel's own maximum, 1024 at most.
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, 0, uintptr(unsafe.Pointer(&mask)), uintptr(len(mask)*64), 0, 4, 0)
	if errno != 0 {
		return []int{-1}
	}
	var nodes []int
	for rest := mask[0]; rest != 0; rest &= rest - 1 {
		nodes = append(nodes, bits.TrailingZeros64(rest))
	}
	return nodes
}

// nodeMemory maps memory of a node; -1 is wherever the kernel puts it. The node is preferred, not bound to: a full node must
// not trigger the out-of-memory killer (MPOL_PREFERRED is 1, MPOL_F_NODE 1, MPOL_F_ADDR 2).
func nodeMemory(node, n int) (b []byte, free func(), err error) {
	if b, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		return nil, nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	free = func() { _ = unix.Munmap(b) } // The end of the process does it as well.
	if node >= 0 && node < maxNodes {
		mask := uint64(1) << node
		if _, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(&b[0])), uintptr(n), 1, uintptr(unsafe.Pointer(&mask)), maxNodes+1, 0); errno != 0 {
			free()
			return nil, nil, fmt.Errorf("prefer memory of node %d: %w", node, errno)
		}
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // Pages of 4 KiB lie scattered, and the GPU fetches an address for each.
	for i := 0; i < n; i += unix.Getpagesize() {
		b[i] = 1 // Touched, so that it is taken now and from there.
	}
	if node >= 0 {
		var got int32
		last := &b[n-1]
		if _, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&got)), 0, 0, uintptr(unsafe.Pointer(last)), 1|2, 0); errno != 0 || int(got) != node {
			free()
			return nil, nil, fmt.Errorf("no memory on node %d", node)
		}
	}
	return b, free, nil
}
