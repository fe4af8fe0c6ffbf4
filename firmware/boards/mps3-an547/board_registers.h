/* Arm MPS3 with FPGA image AN547: Cortex-M55 in an SSE-300 (DAI 0547), Secure addresses. */
#ifndef ENTRAIN_BOARD_REGISTERS_H
#define ENTRAIN_BOARD_REGISTERS_H

#define BOARD_NAME "mps3-an547"
#define BOARD_HZ   32000000u

#define BOARD_UART                   0x59303000u
#define BOARD_UART_RECEIVE_INTERRUPT 33u
#define BOARD_GPIO                   0x51100000u

#endif
